package response

import "context"

// WithCBOR returns a context for requests that [Error] may answer in application/cbor.
func WithCBOR(ctx context.Context) context.Context { return context.WithValue(ctx, cborKey{}, true) }

type cborKey struct{}

func servesCBOR(ctx context.Context) bool { return ctx.Value(cborKey{}) != nil }
