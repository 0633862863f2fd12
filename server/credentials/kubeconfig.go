package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// The one name in a kubeconfig of ours, of its cluster, its user and its context.
const entryName = "keelson"

// kubeconfig is the part of the file's schema that is written here. Bytes are base64 in the file.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
}

type namedCluster struct {
	Name    string  `json:"name"`
	Cluster cluster `json:"cluster"`
}

type cluster struct {
	Server   string `json:"server"`
	CertData []byte `json:"certificate-authority-data"`
}

type namedUser struct {
	Name string   `json:"name"`
	User userInfo `json:"user"`
}

type userInfo struct {
	ClientCertificateData []byte `json:"client-certificate-data"`
	ClientKeyData         []byte `json:"client-key-data"`
	Token                 string `json:"token"`
}

type namedContext struct {
	Name    string      `json:"name"`
	Context contextInfo `json:"context"`
}

type contextInfo struct {
	Cluster string `json:"cluster"`
	User    string `json:"user"`
}

// WriteKubeconfig writes a kubeconfig for the server at a URL (https://host:port), mode 0600, with everything in
// it: kubectl --kubeconfig=path needs nothing else. Its one user has the client certificate and the token, each of
// which works alone. A file that is there is replaced as a whole; one that this package did not write is left
// alone, with an error. It returns the absolute path of the file.
func (b *Bundle) WriteKubeconfig(path, server string) (string, error) {
	if u, err := url.Parse(server); err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("credentials: server %q is not a URL that begins with https://", server)
	}
	content, err := b.kubeconfig(server)
	if err != nil {
		return "", fmt.Errorf("credentials: %w", err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("credentials: write kubeconfig: %w", err)
	}
	target := absolute
	if linked, err := filepath.EvalSymlinks(absolute); err == nil {
		target = linked // a link stays one
	}
	if err := checkOurs(target); err != nil {
		return "", err
	}
	if err := replaceFile(target, content); err != nil {
		return "", fmt.Errorf("credentials: write kubeconfig: %w", err)
	}
	return absolute, nil
}

func (b *Bundle) kubeconfig(server string) ([]byte, error) {
	return yaml.Marshal(kubeconfig{
		APIVersion:     "v1",
		Kind:           "Config",
		CurrentContext: entryName,
		Clusters:       []namedCluster{{entryName, cluster{server, b.CAPEM}}},
		Users:          []namedUser{{entryName, userInfo{b.ClientCertPEM, b.ClientKeyPEM, b.Token}}},
		Contexts:       []namedContext{{entryName, contextInfo{entryName, entryName}}},
	})
}

// checkOurs keeps the kubeconfig that somebody uses for other clusters, or any other file, from being overwritten.
func checkOurs(path string) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(content)) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("credentials: write kubeconfig: %w", err)
	}
	var there kubeconfig
	err = yaml.Unmarshal(content, &there)
	ours := err == nil && there.Kind == "Config"
	for _, c := range there.Clusters {
		ours = ours && c.Name == entryName
	}
	for _, u := range there.Users {
		ours = ours && u.Name == entryName
	}
	if !ours {
		return fmt.Errorf("credentials: %s is not a kubeconfig that was written here, and would be overwritten: "+
			"move it away, or write to another file", path)
	}
	return nil
}
