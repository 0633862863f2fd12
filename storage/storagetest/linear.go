package storagetest

import _ "github.com/anishathalye/porcupine" // decides whether a history of concurrent calls is linearizable
