package accounts

import (
	"time"

	"github.com/keelson-dev/keelson/server"
	"go.uber.org/zap"
)

// Cleaner is an extension with a cleaner whose first pass is at once.
type Cleaner struct{ Unused time.Duration }

// Install implements server.Extension.
func (e Cleaner) Install(h *server.Host) error {
	c, err := newCleaner(h, e.Unused, zap.NewNop())
	if err != nil {
		return err
	}
	c.after = 0
	h.Go(c.run)
	return nil
}
