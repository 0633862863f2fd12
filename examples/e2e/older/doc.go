// Package older has the sources of programs that are built with older releases of client-go, for tests of a server with clients of
// that age. Its module is not in go.work, and requires the oldest of the releases. The folder of each release, such as v135 for
// 1.35, is a module with the requirements of that release, and has the programs as its tools:
//
//	cd v136
//	GOWORK=off go build -o /tmp/kubectl github.com/keelson-dev/keelson/examples/e2e/older/kubectl
package older
