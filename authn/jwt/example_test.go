package jwt_test

import (
	"fmt"

	"github.com/keelson-dev/keelson/authn/jwt"
)

// A program checks a file before it uses it.
func ExampleParse() {
	c, err := jwt.Parse([]byte(`
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://login.example.com
    audiences: [fleet]
  claimMappings:
    username:
      claim: sub
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(jwt.Validate(c))
	// Output:
	// invalid authentication configuration: jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing
}
