package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	requestTimeout = 15 * time.Second
	maxBody        = 8 << 20 // bytes read of an answer
	userAgent      = "differ/1.0"
)

// endpoint is a server and a way to reach it.
type endpoint struct {
	url    string
	client *http.Client
	token  string // "" if the client authenticates itself
}

// openKubeconfig returns the endpoint of the only cluster and user in a kubeconfig file.
func openKubeconfig(path string) (*endpoint, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Clusters []struct {
			Cluster struct {
				Server   string `json:"server"`
				CA       []byte `json:"certificate-authority-data"`
				Insecure bool   `json:"insecure-skip-tls-verify"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Token string `json:"token"`
				Cert  []byte `json:"client-certificate-data"`
				Key   []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Clusters) != 1 || len(file.Users) != 1 {
		return nil, fmt.Errorf("%s: %d clusters and %d users, want one of each", path, len(file.Clusters), len(file.Users))
	}
	cluster, user := file.Clusters[0].Cluster, file.Users[0].User
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: cluster.Insecure}
	if len(cluster.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(cluster.CA)
	}
	if user.Token == "" {
		cert, err := tls.X509KeyPair(user.Cert, user.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: no token and %w", path, err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true}
	return &endpoint{url: strings.TrimSuffix(cluster.Server, "/"), client: &http.Client{Transport: transport}, token: user.Token}, nil
}

// answer is the answer of one server.
type answer struct {
	code   int
	header http.Header
	body   []byte
	failed string // why there is no answer, or no end of it
}

// send sends a request and reads its answer.
func (e *endpoint) send(ctx context.Context, method, target string, header [][2]string, body []byte) answer {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, e.url+target, bytes.NewReader(body))
	if err != nil {
		return answer{failed: "no request: " + err.Error()}
	}
	req.Header.Set("User-Agent", userAgent)
	if e.token != "" {
		req.Header.Set("Authorization", "Bearer "+e.token)
	}
	for _, h := range header {
		req.Header.Set(h[0], h[1])
	}
	client := *e.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return answer{failed: failure(err)}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	a := answer{code: resp.StatusCode, header: resp.Header, body: text}
	if err != nil {
		a.failed = failure(err)
	}
	return a
}

// failure names a failure without addresses.
func failure(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	return "the connection broke"
}
