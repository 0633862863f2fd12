package flowcontrol_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/flowcontrol"
)

func Example() {
	turns := flowcontrol.NewInFlight(1, 1)
	read := authz.Attributes{Verb: "list"}

	release, err := turns.Admit(context.Background(), read)
	fmt.Println(err)

	_, err = turns.Admit(context.Background(), read)
	var rejection *flowcontrol.RejectedError
	if errors.As(err, &rejection) {
		fmt.Println(err, "- try again in", rejection.RetryAfter)
	}

	release()
	_, err = turns.Admit(context.Background(), read)
	fmt.Println(err)
	// Output:
	// <nil>
	// too many requests: read-only requests in flight - try again in 1s
	// <nil>
}
