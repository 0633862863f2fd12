//go:build !linux

package bolt_test

import "errors"

// warmed is not available here.
func warmed(_ string, cold bool) error {
	if cold {
		return errors.New("there is no known way to take a file out of the system's memory")
	}
	return nil
}
