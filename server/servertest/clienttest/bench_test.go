package clienttest_test

import (
	"testing"

	"github.com/keelson-dev/keelson/server/servertest/clienttest"
)

// An Environment with all kinds of client-go's scheme, from Start to the end of Stop.
func BenchmarkEnvironment(b *testing.B) {
	for b.Loop() {
		e := &clienttest.Environment{}
		if _, err := e.Start(); err != nil {
			b.Fatal(err)
		}
		if err := e.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}
