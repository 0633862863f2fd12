// Package bodycost has the tests of what the body of one request costs a server: see server.Limits.MaxDecodedBytes.
package bodycost
