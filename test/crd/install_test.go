package crd

import (
	"testing"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
)

func TestTheDefinitionsInstall(t *testing.T) {
	c := cluster.Start(t, cluster.Options{ControlPlaneOnly: true})
	Install(t, c.Config)
}
