//go:build !unix

package program

import "context"

// listen does nothing: there are no such signals here.
func (p *Process) listen(context.Context) func() { return func() {} }
