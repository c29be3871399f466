package crd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/cluster"
)

// shared is an API server with the definitions installed, and the namespace
// shop. A test that changes definitions starts one of its own.
var shared struct {
	config *rest.Config
	client client.Client
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "crd:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	c, err := cluster.Launch(ctx, cluster.Options{ControlPlaneOnly: true})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := installAll(ctx, c.Config); err != nil {
		return 1, err
	}
	shared.config = c.Config
	if shared.client, err = connect(c.Config); err != nil {
		return 1, err
	}
	if err := shared.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// cleanup is a context for what is done after a test, when its own has ended.
func cleanup() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}

// connect returns a client that refuses unknown fields, as kubectl does.
func connect(config *rest.Config) (client.Client, error) {
	known := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(known), v1alpha1.AddToScheme(known)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		return nil, err
	}
	return client.WithFieldValidation(c, metav1.FieldValidationStrict), nil
}
