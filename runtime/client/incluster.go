package client

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// serviceAccountDir is where Kubernetes mounts the token of a pod's service account.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// InCluster returns the configuration of a pod: the server of the variables KUBERNETES_SERVICE_HOST and
// KUBERNETES_SERVICE_PORT, and the token and ca.crt of the pod's service account. The token is read again from its file.
func InCluster() (Config, error) { return inCluster(os.Getenv, serviceAccountDir) }

func inCluster(getenv func(string) string, dir string) (Config, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Config{}, errors.New("in-cluster configuration: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set; " +
			"outside of a pod use a kubeconfig")
	}
	ca, err := readFile(filepath.Join(dir, "ca.crt"))
	if err == nil && len(ca) == 0 {
		err = fmt.Errorf("%s is empty", filepath.Join(dir, "ca.crt"))
	}
	if err == nil {
		err = checkAuthorities(ca)
	}
	if err != nil {
		return Config{}, fmt.Errorf("in-cluster configuration: ca.crt: %w; the pod needs automountServiceAccountToken", err)
	}
	cfg := Config{Server: "https://" + net.JoinHostPort(host, port), CA: ca, TokenFile: filepath.Join(dir, "token")}
	if _, err := readToken(cfg.TokenFile); err != nil {
		return Config{}, fmt.Errorf("in-cluster configuration: token: %w; the pod needs automountServiceAccountToken", err)
	}
	if _, err := cfg.check(); err != nil {
		return Config{}, fmt.Errorf("in-cluster configuration: %w", err)
	}
	return cfg, nil
}
