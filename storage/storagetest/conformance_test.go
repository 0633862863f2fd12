package storagetest_test

import (
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

func TestExample(t *testing.T) {
	storagetest.Backend(t, func(*testing.T) storage.Backend { return NewLog() })
}
