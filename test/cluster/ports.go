package cluster

import "github.com/plimsoll-dev/plimsoll/test/loopback"

// freePorts fills each of the ports.
func freePorts(ports ...*int) error {
	for _, p := range ports {
		port, err := loopback.Port()
		if err != nil {
			return err
		}
		*p = port
	}
	return nil
}

func httpURL(port int) string  { return "http://" + loopback.At(port) }
func httpsURL(port int) string { return "https://" + loopback.At(port) }
