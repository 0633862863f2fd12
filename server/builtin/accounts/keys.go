package accounts

import (
	"context"
	"crypto"
	"slices"
	"sync"

	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/runtime/reload"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/credentials"
	"go.uber.org/zap"
)

// keyFiles are the files with keys.
type keyFiles struct {
	keys *serviceaccount.Keys

	mu    sync.Mutex // guards texts
	texts [][]byte   // the content of each file; the first one signs
}

// openKeys returns the keys of the options, and follows their files.
func openKeys(h *server.Host, o Options) (*serviceaccount.Keys, error) {
	paths := slices.Concat([]string{o.SigningKeyFile}, o.KeyFiles)
	if dir := h.CredentialsDir(); paths[0] == "" && dir != "" {
		path, err := credentials.SigningKeyFile(dir)
		if err != nil {
			return nil, err
		}
		paths[0] = path
	}
	f := &keyFiles{texts: make([][]byte, len(paths))}
	if paths[0] == "" {
		if h.SharesStorage() {
			o.Logger.Warn("the key that signs tokens of service accounts is in memory, so that other servers of the storage refuse the tokens")
		}
		text, err := credentials.NewSigningKey()
		if err != nil {
			return nil, err
		}
		f.texts[0] = text
	}
	for i, path := range paths {
		if path == "" {
			continue
		}
		file, err := reload.Open(path, func(text []byte) error { return f.use(i, text) }, reload.Options{Every: o.Reload, Tried: f.tried(path, o.Logger)})
		if err != nil {
			return nil, err
		}
		h.Go(func(ctx context.Context) { file.Follow(ctx) })
	}
	if f.keys == nil { // none of the files is read by reload
		if err := f.use(0, f.texts[0]); err != nil {
			return nil, err
		}
	}
	return f.keys, nil
}

// tried returns a function that logs an attempt to use changed keys.
func (f *keyFiles) tried(path string, log *zap.Logger) func(error) {
	return func(err error) {
		if err != nil {
			log.Error("changed keys of service accounts cannot be used, and those from before stay in use", zap.String("path", path), zap.Error(err))
			return
		}
		log.Info("changed keys of service accounts are used", zap.String("path", path))
	}
}

// use uses the content of a file. When the files are opened, the keys are made with the last one.
func (f *keyFiles) use(i int, text []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	texts := slices.Clone(f.texts)
	texts[i] = text
	signer, public, err := parse(texts)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(texts, func(t []byte) bool { return t == nil }) {
		f.texts = texts
		return nil
	}
	if f.keys == nil {
		f.keys, err = serviceaccount.NewKeys(signer, public...)
	} else {
		err = f.keys.Replace(signer, public...)
	}
	if err == nil {
		f.texts = texts
	}
	return err
}

// parse returns the key that signs, and all that verify.
func parse(texts [][]byte) (signer crypto.Signer, public []crypto.PublicKey, err error) {
	for i, text := range texts {
		if text == nil {
			continue
		}
		if i == 0 {
			if signer, err = serviceaccount.ParseSigner(text); err != nil {
				return nil, nil, err
			}
		}
		keys, err := serviceaccount.ParsePublic(text)
		if err != nil {
			return nil, nil, err
		}
		public = append(public, keys...)
	}
	return signer, public, nil
}
