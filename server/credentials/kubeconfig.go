package credentials

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// The name of the cluster, the user and the context in a kubeconfig that this package writes.
const entryName = "keelson"

// kubeconfig is the part of the schema of the file that this package writes. Bytes are base64 in the file.
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

// WriteKubeconfig writes a complete kubeconfig for the server at a URL, with mode 0600: kubectl --kubeconfig=path needs nothing
// else. The URL is https://host:port, or https://host:port/path for a server that is mounted below a path. Clients trust the
// authority of the Bundle and the given authorities, which are certificates in PEM; one of them must have signed the certificate
// of the server at that URL. A certificate that is signed with its own key is its own authority. The user of the kubeconfig has
// the client certificate and the token; either of them authenticates the administrator. An existing file is replaced as a whole.
// If the file is a kubeconfig with other clusters or users, WriteKubeconfig does not replace it and returns an error.
// WriteKubeconfig returns the absolute path of the file.
func (b *Bundle) WriteKubeconfig(path, server string, authorities ...[]byte) (string, error) {
	if u, err := url.Parse(server); err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("credentials: server %q is not a URL that begins with https://", server)
	}
	trusted := bytes.Clone(b.CAPEM)
	for _, more := range authorities {
		if err := CheckAuthorities(more); err != nil {
			return "", fmt.Errorf("credentials: write kubeconfig: %w", err)
		}
		trusted = append(append(bytes.TrimRight(trusted, "\n"), '\n'), more...)
	}
	content, err := b.kubeconfig(server, trusted)
	if err != nil {
		return "", fmt.Errorf("credentials: %w", err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("credentials: write kubeconfig: %w", err)
	}
	target := absolute
	if linked, err := filepath.EvalSymlinks(absolute); err == nil {
		target = linked // replace the target of the link, and not the link
	}
	if err := checkOurs(target); err != nil {
		return "", err
	}
	if err := replaceFile(target, content); err != nil {
		return "", fmt.Errorf("credentials: write kubeconfig: %w", err)
	}
	return absolute, nil
}

// CheckAuthorities returns an error if authorities are not what WriteKubeconfig takes: certificates in PEM, at least one. A private
// key among them is an error, because kubeconfigs are given to others.
func CheckAuthorities(authorities []byte) error {
	n := 0
	for rest := authorities; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("want PEM blocks CERTIFICATE of authorities only, not a block %s", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d of the authorities: %w", n+1, err)
		}
	}
	if n == 0 {
		return errors.New("want the certificates of authorities in PEM, and there is none")
	}
	return nil
}

func (b *Bundle) kubeconfig(server string, trusted []byte) ([]byte, error) {
	return yaml.Marshal(kubeconfig{
		APIVersion:     "v1",
		Kind:           "Config",
		CurrentContext: entryName,
		Clusters:       []namedCluster{{entryName, cluster{server, trusted}}},
		Users:          []namedUser{{entryName, userInfo{b.ClientCertPEM, b.ClientKeyPEM, b.Token}}},
		Contexts:       []namedContext{{entryName, contextInfo{entryName, entryName}}},
	})
}

// checkOurs returns an error for a kubeconfig with other clusters or users, which must not be overwritten. Any other file at the
// path, such as the rest of an older file, may be replaced.
func checkOurs(path string) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("credentials: write kubeconfig: %w", err)
	}
	var there kubeconfig
	if yaml.Unmarshal(content, &there) != nil || there.Kind != "Config" {
		return nil
	}
	others := slices.ContainsFunc(there.Clusters, func(c namedCluster) bool { return c.Name != entryName }) ||
		slices.ContainsFunc(there.Users, func(u namedUser) bool { return u.Name != entryName })
	if others {
		return fmt.Errorf("credentials: %s is a kubeconfig for other clusters, which would be lost: "+
			"move it away, or write to another file", path)
	}
	return nil
}
