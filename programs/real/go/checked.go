// Cryptography of Go, whose code and constants are compared with a checksum before any of it runs (since 1.24, if GODEBUG says so).
package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
)

func main() {
	sum := sha256.Sum256([]byte("code"))
	mac := hmac.New(sha512.New, sum[:])
	mac.Write(sum[:])
	fmt.Printf("%x %x\n", sum, mac.Sum(nil))
	block, err := aes.NewCipher(sum[:])
	fmt.Println(err)
	gcm, err := cipher.NewGCM(block)
	fmt.Println(gcm.NonceSize(), err)
	stream := cipher.NewCTR(block, sum[:16])
	stream.XORKeyStream(sum[:], sum[:])
	fmt.Printf("%x\n", sum)
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		fmt.Println(curve.Params().Name, err)
		signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
		fmt.Println(ecdsa.VerifyASN1(&key.PublicKey, sum[:], signature), ecdsa.VerifyASN1(&key.PublicKey, sum[:31], signature), err)
	}
}
