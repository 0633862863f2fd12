package main

import (
	"fmt"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/options"
	"go.uber.org/zap"
)

// serviceAccounts serves service accounts and their tokens. The key that signs is kept in --cert-dir unless a flag names a file. authority is
// published in each namespace. In the mode RBAC the role system:service-account-issuer-discovery lets accounts read the documents
// about the keys.
func serviceAccounts(o *options.Options, authority []byte, log *zap.Logger) server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		a := o.ServiceAccounts
		key := a.SigningKeyFile
		if key == "" {
			var err error
			if key, err = credentials.SigningKeyFile(o.CertDir); err != nil {
				return fmt.Errorf("--cert-dir: %w", err)
			}
		}
		return accounts.New(accounts.Options{
			Issuers: a.Issuers, Audiences: o.Authentication.Audiences, SigningKeyFile: key, KeyFiles: a.KeyFiles, KeysURI: a.KeysURI,
			MaxExpiration: a.MaxExpiration, NoExtension: !a.Extend, NoLookup: !a.Lookup, RootCA: authority, Reload: lookEvery, Logger: log,
		}).Install(h)
	})
}
