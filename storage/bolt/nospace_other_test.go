//go:build !unix

package bolt_test

import "errors"

func fill(string) error         { return errors.New("not on this system") }
func fillJournal(string) error  { return fill("") }
func fillInterval(string) error { return fill("") }
func fillCopies(string) error   { return fill("") }
