package webhook_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/keelson-dev/keelson/runtime/webhook"
)

// A filter for a server whose users define webhooks: nothing on this machine and on its network, such as the metadata service of
// a cloud, is called.
func ExampleOptions_dialFilter() {
	filter := func(_, address string) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		ip := at.Addr().Unmap()
		if !ip.IsGlobalUnicast() || ip.IsPrivate() {
			return fmt.Errorf("webhooks at %s are not allowed", ip)
		}
		return nil
	}
	caller := webhook.New(webhook.Options{DialFilter: filter})
	defer caller.Close()
	client, err := caller.Client(webhook.Config{URL: "https://127.0.0.1:6443/convert"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Post(context.Background(), []byte("{}"))
	fmt.Println("clients:", err)
	if call, ok := err.(*webhook.Error); ok {
		fmt.Println("the log:", call.Reason)
	}
	// Output:
	// clients: Post "https://127.0.0.1:6443/convert?timeout=30s": no usable answer; the log of the server says why
	// the log: Post "https://127.0.0.1:6443/convert?timeout=30s": dial tcp 127.0.0.1:6443: webhooks at 127.0.0.1 are not allowed
}
