package main

// Public certificate authorities for where the machine has none, as in the
// image, which holds nothing but this binary. A machine's own come first.
import _ "golang.org/x/crypto/x509roots/fallback"
