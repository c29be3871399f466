package cluster

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig file for the user that the pair is for. It
// carries the certificates inside, so that it can be copied elsewhere.
func writeKubeconfig(path, server string, ca authority, user pair) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["plimsoll"] = &clientcmdapi.Cluster{Server: server, CertificateAuthority: ca.path}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificate: user.cert, ClientKey: user.key}
	config.Contexts["plimsoll"] = &clientcmdapi.Context{Cluster: "plimsoll", AuthInfo: "user"}
	config.CurrentContext = "plimsoll"
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return fmt.Errorf("reading the certificates for %s: %w", path, err)
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// clientConfig reads a kubeconfig for use by tests, whose requests come in bursts:
// client-go's own limit of five a second would be what they measure.
func clientConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	config.QPS = -1
	return config, nil
}
