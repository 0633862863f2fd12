//go:build !unix

package program

import "context"

// listen has no signals to handle here.
func (p *Process) listen(context.Context) func() { return func() {} }
