package credentials_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/keelson-dev/keelson/server/credentials"
)

// A program serves with a certificate that it made itself, and a client trusts the authority of that certificate.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "credentials")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	creds, err := credentials.Open(credentials.Options{Dir: filepath.Join(dir, "hello.pki"), Host: "127.0.0.1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("administrator:", creds.User, creds.Groups)

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := &http.Server{Handler: http.NotFoundHandler()}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(tls.NewListener(ln, creds.TLSConfig())) }()
	url := "https://" + credentials.DialableHost(ln.Addr())

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: creds.ClientCAs}}
	resp, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		fmt.Println(err)
	} else {
		fmt.Println(resp.Status)
		_ = resp.Body.Close()
	}
	transport.CloseIdleConnections()

	// kubectl --kubeconfig=hello.kubeconfig needs nothing else.
	path, err := creds.WriteKubeconfig(filepath.Join(dir, "hello.kubeconfig"), url)
	fmt.Println(filepath.Base(path), err)

	_ = srv.Close()
	<-done
	// Output:
	// administrator: admin [system:masters]
	// 404 Not Found
	// hello.kubeconfig <nil>
}
