// Package browser tests the HTML report in a real browser: headless Chromium.
// It is a module of its own, so that its driver is no dependency of the product.
package browser
