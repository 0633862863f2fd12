//go:build !unix

package embedded_test

import "github.com/keelson-dev/keelson/storage/etcd/embedded"

func roles() map[string]func(embedded.Options) error {
	return map[string]func(embedded.Options) error{"serve": serve}
}
