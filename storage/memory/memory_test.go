package memory_test

import (
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Backend(t, func(*testing.T) storage.Backend { return memory.New(memory.Options{}) })
}
