// Package embedded runs an etcd server inside the process.
package embedded

import _ "go.etcd.io/etcd/server/v3/embed"
