// Package bodycost has tests of the memory and time that clients can take from a server that bounds them. They test the body of
// one request, which server.Limits.MaxDecodedBytes bounds, and many clients at once, in TestSiege.
package bodycost
