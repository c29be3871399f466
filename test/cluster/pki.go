package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority is a certificate authority made for one cluster.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	path string // its certificate as a PEM file
}

// pair is a certificate and its key, as PEM files.
type pair struct{ cert, key string }

// certificates are all that a cluster needs.
type certificates struct {
	ca, frontProxyCA authority
	apiServer        pair // serving
	apiServerKubelet pair // client, towards the kubelet
	frontProxy       pair // client, towards aggregated API servers
	kubelet          pair // serving
	metricsServer    pair // serving
	controllers      pair // serving, of the controller manager and the scheduler
	admin            pair
	manager          pair
	scheduler        pair
	node             pair
	serviceAccounts  pair // the key that signs tokens, and its public half as "cert"
}

// newCertificates makes everything in dir.
func newCertificates(dir string) (certificates, error) {
	var c certificates
	var err error
	if c.ca, err = newAuthority(dir, "ca"); err != nil {
		return c, err
	}
	if c.frontProxyCA, err = newAuthority(dir, "front-proxy-ca"); err != nil {
		return c, err
	}
	const masters = "system:masters"
	leaves := []struct {
		to   *pair
		by   authority
		name string
		leaf leaf
	}{
		{&c.apiServer, c.ca, "kube-apiserver", serving("kube-apiserver", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")},
		{&c.kubelet, c.ca, "kubelet", serving("system:node:"+NodeName, "localhost", NodeName)},
		{&c.metricsServer, c.ca, "metrics-server", serving("metrics-server", "localhost", "metrics-server.kube-system.svc")},
		{&c.controllers, c.ca, "controllers", serving("controllers", "localhost")},
		{&c.apiServerKubelet, c.ca, "kube-apiserver-kubelet-client", client("kube-apiserver-kubelet-client", masters)},
		{&c.admin, c.ca, "admin", client("admin", masters)},
		{&c.manager, c.ca, controllerManager, client("system:kube-controller-manager")},
		{&c.scheduler, c.ca, scheduler, client("system:kube-scheduler")},
		{&c.node, c.ca, "node", client("system:node:"+NodeName, "system:nodes")},
		{&c.frontProxy, c.frontProxyCA, frontProxyName, client(frontProxyName)},
	}
	for _, l := range leaves {
		if *l.to, err = l.by.issue(dir, l.name, l.leaf); err != nil {
			return c, err
		}
	}
	c.serviceAccounts, err = newKeyPair(dir, "service-accounts")
	return c, err
}

// leaf says whom a certificate is for.
type leaf struct {
	subject pkix.Name
	hosts   []string
	usage   x509.ExtKeyUsage
}

// serving is for a server on 127.0.0.1, or as pods see the machine, under these names.
func serving(name string, hosts ...string) leaf {
	return leaf{subject: pkix.Name{CommonName: name}, hosts: hosts, usage: x509.ExtKeyUsageServerAuth}
}

// client is for the user name, a member of the groups.
func client(name string, groups ...string) leaf {
	subject := pkix.Name{CommonName: name, Organization: groups} //nolint:misspell // The library's spelling.
	return leaf{subject: subject, usage: x509.ExtKeyUsageClientAuth}
}

// lifetime is well beyond any test's, or a person's afternoon with a cluster.
const lifetime = 30 * 24 * time.Hour

func newAuthority(dir, name string) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template, err := newTemplate(pkix.Name{CommonName: "plimsoll-test-" + name})
	if err != nil {
		return authority{}, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, err
	}
	a := authority{cert: cert, key: key, path: filepath.Join(dir, name+".crt")}
	return a, writePEM(a.path, "CERTIFICATE", der)
}

func (a authority) issue(dir, name string, l leaf) (pair, error) {
	p := pair{cert: filepath.Join(dir, name+".crt"), key: filepath.Join(dir, name+".key")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template, err := newTemplate(l.subject)
	if err != nil {
		return p, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{l.usage}
	if l.usage == x509.ExtKeyUsageServerAuth {
		template.DNSNames = l.hosts
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(kubernetesService)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return p, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	if err := writePEM(p.cert, "CERTIFICATE", der); err != nil {
		return p, err
	}
	return p, writeKey(p.key, key)
}

// newKeyPair makes a key and, in the place of a certificate, its public half.
func newKeyPair(dir, name string) (pair, error) {
	p := pair{cert: filepath.Join(dir, name+".pub"), key: filepath.Join(dir, name+".key")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, fmt.Errorf("making the key of %s: %w", name, err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return p, err
	}
	if err := writePEM(p.cert, "PUBLIC KEY", der); err != nil {
		return p, err
	}
	return p, writeKey(p.key, key)
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour), // Clocks are set back now and then.
		NotAfter:     now.Add(lifetime),
	}, nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("writing a certificate: %w", err)
	}
	return nil
}
