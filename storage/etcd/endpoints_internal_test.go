package etcd

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"
)

func TestEndpoints(t *testing.T) {
	for _, test := range []struct {
		in  string
		tls bool
		url string // or, with "!" before, words of the error
	}{
		{"127.0.0.1:2379", false, "http://127.0.0.1:2379"},
		{"127.0.0.1:2379", true, "https://127.0.0.1:2379"},
		{" http://etcd:2379/ ", false, "http://etcd:2379"},
		{"HTTP://etcd:2379", false, "http://etcd:2379"},
		{"https://etcd:2379", false, "https://etcd:2379"},
		{"https://etcd:2379", true, "https://etcd:2379"},
		{"http://[::1]:2379", false, "http://[::1]:2379"},
		{"[::1]:2379", false, "http://[::1]:2379"},
		{"unix:///run/etcd", false, "unix:///run/etcd"},
		{"unix:///run/etcd", true, "unixs:///run/etcd"},
		{"unix://etcd.sock", false, "unix:etcd.sock"},
		{"unix:etcd.sock", false, "unix:etcd.sock"},
		{"unixs:///run/etcd", false, "unixs:///run/etcd"},
		{"", false, "!empty"},
		{"  ", false, "!empty"},
		{"http://etcd:2379", true, "!Options.TLS is given"},
		{"ftp://etcd:2379", false, `!scheme "ftp"`},
		{"etcd", false, "!no port"},
		{"http://etcd", false, "!no port: etcd's own is etcd:2379"},
		{"http://:2379", false, "!no host"},
		{"http://etcd:99999", false, "!between 1 and 65535"},
		{"etcd:0", false, "!between 1 and 65535"},
		{"http://etcd:port", false, "!no URL"},
		{"http://etcd:2379/v3", false, "!path"},
		{"http://etcd:2379?a=b", false, "!path or query"},
		{"http://ali:sesame@etcd:2379", false, "!Options.Username"},
		{"unix://", false, "!no socket"},
		{"http://a:1,http://b:1", false, "!comma"},
		{"a:1, b:1", false, "!comma"},
		{"http://[fe80::1%25eth0]:2379", false, "!zone"},
		{"::1:2379", false, "!no URL"},
	} {
		e, err := parseEndpoint(test.in, test.tls)
		words, refused := strings.CutPrefix(test.url, "!")
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), words)):
			t.Errorf("%q: %+v, %v, want an error with %q", test.in, e, err, words)
		case !refused && (err != nil || e.url != test.url || e.secure != strings.Contains(test.url, "s:/")):
			t.Errorf("%q: %+v, %v, want %s", test.in, e, err, test.url)
		}
	}
}

func TestSeveralEndpoints(t *testing.T) {
	all, config, err := parseEndpoints(Options{Endpoints: []string{"a:1", "http://b:1", "http://a:1/"}})
	var urls []string
	for _, e := range all {
		urls = append(urls, e.url)
	}
	if err != nil || config != nil || !slices.Equal(urls, []string{"http://a:1", "http://b:1"}) {
		t.Errorf("%q, %v, %v", urls, config, err)
	}
	if _, _, err := parseEndpoints(Options{Endpoints: []string{"http://a:1", "https://b:1"}}); err == nil || !strings.Contains(err.Error(), `endpoint 2, "https://b:1"`) {
		t.Errorf("with and without TLS: %v", err)
	}
	if _, config, err := parseEndpoints(Options{Endpoints: []string{"https://b:1"}}); err != nil || config == nil {
		t.Errorf("https without a configuration: %v, %v", config, err)
	}
	for _, s := range []string{"http://ali:sesame@b:1", "http://ali:ses@me@b:x", "ali:sesame@b:1", "ftp://ali:sesame@b:1"} {
		_, _, err := parseEndpoints(Options{Endpoints: []string{s}})
		if err == nil || strings.Contains(err.Error(), "ses") || !strings.Contains(err.Error(), "...@b:") {
			t.Errorf("the error %v, want the endpoint without the password", err)
		}
	}
	own := &tls.Config{ServerName: "x"}
	if _, config, err := parseEndpoints(Options{Endpoints: []string{"b:1"}, TLS: own}); err != nil || config == own || config.ServerName != "x" {
		t.Errorf("with a configuration: %v, %v, want a copy of it", config, err)
	}
}
