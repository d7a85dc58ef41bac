// SPDX-License-Identifier: Apache-2.0
//! The ciphers of TLS 1.3, record by record.
//!
//! On x86-64 they are those of AWS-LC: they read from one place and write to another, which saves a copy of everything
//! that is sent, and use the widest registers that the processor has. Elsewhere they are ring's, as for handshakes.

#[cfg(target_arch = "x86_64")]
use aws_lc_rs::aead;
#[cfg(not(target_arch = "x86_64"))]
use ring::aead;
use rustls::ConnectionTrafficSecrets as Secrets;
use rustls::crypto::cipher::{Iv, Nonce};

/// Bytes of a record's header.
pub(super) const HEAD: usize = 5;
/// Bytes that authenticate a record.
pub(super) const TAG: usize = 16;

/// One direction of a connection: a key, and how many records it has protected.
///
/// The nonce of a record is made of its number, so none is ever used twice with a key.
pub(super) struct Cipher {
    key: aead::LessSafeKey,
    iv: Iv,
    number: u64,
}

/// A record is not what the holder of the key made, or the library refuses the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

impl Cipher {
    /// `number`: records that the key has protected already.
    pub(super) fn new((number, secrets): (u64, Secrets)) -> Result<Self, Refused> {
        let (algorithm, key, iv) = match secrets {
            Secrets::Aes128Gcm { key, iv } => (&aead::AES_128_GCM, key, iv),
            Secrets::Aes256Gcm { key, iv } => (&aead::AES_256_GCM, key, iv),
            Secrets::Chacha20Poly1305 { key, iv } => (&aead::CHACHA20_POLY1305, key, iv),
            _ => return Err(Refused),
        };
        let key = aead::UnboundKey::new(algorithm, key.as_ref()).map_err(|_| Refused)?;
        Ok(Self {
            key: aead::LessSafeKey::new(key),
            iv,
            number,
        })
    }

    /// Records that the key has protected.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The nonce of the next record.
    fn nonce(&mut self) -> Result<aead::Nonce, Refused> {
        let nonce = Nonce::new(&self.iv, self.number);
        self.number = self.number.checked_add(1).ok_or(Refused)?;
        Ok(aead::Nonce::assume_unique_for_key(nonce.0))
    }

    /// Encrypts `plain` and the byte `kind` after it to `sealed`, which is longer by that byte and the tag.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn seal(&mut self, head: [u8; HEAD], plain: &[u8], kind: u8, sealed: &mut [u8]) -> Result<(), Refused> {
        let nonce = self.nonce()?;
        let (body, rest) = sealed.split_at_mut_checked(plain.len()).ok_or(Refused)?;
        self.key
            .seal_out_of_place_scatter(nonce, aead::Aad::from(head), plain, body, &[kind], rest)
            .map_err(|_| Refused)
    }

    /// Encrypts `plain` and the byte `kind` after it to `sealed`, which is longer by that byte and the tag.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn seal(&mut self, head: [u8; HEAD], plain: &[u8], kind: u8, sealed: &mut [u8]) -> Result<(), Refused> {
        let nonce = self.nonce()?;
        let (body, rest) = sealed.split_at_mut_checked(plain.len() + 1).ok_or(Refused)?;
        body[..plain.len()].copy_from_slice(plain);
        body[plain.len()] = kind;
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, aead::Aad::from(head), body)
            .map_err(|_| Refused)?;
        if rest.len() != TAG {
            return Err(Refused);
        }
        rest.copy_from_slice(tag.as_ref());
        Ok(())
    }

    /// Decrypts in place. What the peer put in, with the byte that says its kind and what comes after that.
    pub(super) fn open<'a>(&mut self, head: [u8; HEAD], sealed: &'a mut [u8]) -> Result<&'a mut [u8], Refused> {
        if sealed.len() < TAG {
            return Err(Refused);
        }
        let nonce = self.nonce()?;
        self.key
            .open_in_place(nonce, aead::Aad::from(head), sealed)
            .map_err(|_| Refused)
    }
}

#[cfg(test)]
mod tests {
    use ring::aead as reference;
    use rustls::crypto::cipher::AeadKey;

    use super::*;

    const HEADER: [u8; HEAD] = [23, 3, 3, 0, 0];

    /// Secrets of each suite, those of a handshake first: with the algorithm of ring, key and vector.
    fn suites() -> Vec<(Secrets, &'static reference::Algorithm, Vec<u8>, Vec<u8>)> {
        let (key, iv) = (|| AeadKey::from([7; 32]), || Iv::new([9; 12]));
        [
            crate::secure::tests::traffic_secrets(),
            Secrets::Aes256Gcm { key: key(), iv: iv() },
            Secrets::Chacha20Poly1305 { key: key(), iv: iv() },
        ]
        .into_iter()
        .map(|secrets| {
            let (algorithm, key, iv) = match &secrets {
                Secrets::Aes128Gcm { key, iv } => (&reference::AES_128_GCM, key, iv),
                Secrets::Aes256Gcm { key, iv } => (&reference::AES_256_GCM, key, iv),
                Secrets::Chacha20Poly1305 { key, iv } => (&reference::CHACHA20_POLY1305, key, iv),
                _ => panic!("unknown suite"),
            };
            let (key, iv) = (key.as_ref().to_vec(), iv.as_ref().to_vec());
            (secrets, algorithm, key, iv)
        })
        .collect()
    }

    #[test]
    fn both_libraries_understand_each_other() {
        for (secrets, algorithm, key, iv) in suites() {
            let other = reference::LessSafeKey::new(reference::UnboundKey::new(algorithm, &key).unwrap());
            let mut cipher = Cipher::new((5, secrets)).unwrap();
            for (size, number) in [0usize, 1, 15, 16, 17, 255, 4096, 16384].into_iter().zip(5u64..) {
                let plain: Vec<u8> = (0..size).map(|i| i as u8).collect();
                let mut sealed = vec![0; size + 1 + TAG];
                cipher.seal(HEADER, &plain, 23, &mut sealed).unwrap();
                let mut nonce: [u8; 12] = iv.clone().try_into().unwrap();
                nonce[4..]
                    .iter_mut()
                    .zip(number.to_be_bytes())
                    .for_each(|(a, b)| *a ^= b);
                let nonce = reference::Nonce::assume_unique_for_key(nonce);
                let opened = other
                    .open_in_place(nonce, reference::Aad::from(HEADER), &mut sealed)
                    .unwrap();
                assert_eq!(opened, [&plain[..], &[23]].concat(), "{size} bytes");
            }
            assert_eq!(cipher.number(), 13);
        }
    }

    #[test]
    fn a_changed_byte_anywhere_is_noticed() {
        let secrets = || Secrets::Aes256Gcm {
            key: AeadKey::from([1; 32]),
            iv: Iv::new([2; 12]),
        };
        let mut sealed = vec![0; 40 + 1 + TAG];
        Cipher::new((0, secrets()))
            .unwrap()
            .seal(HEADER, &[3; 40], 23, &mut sealed)
            .unwrap();
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            let mut cipher = Cipher::new((0, secrets())).unwrap();
            assert_eq!(cipher.open(HEADER, &mut changed), Err(Refused), "byte {at}");
        }
        let mut late = Cipher::new((1, secrets())).unwrap();
        assert_eq!(late.open(HEADER, &mut sealed.clone()), Err(Refused), "another number");
        let mut other = Cipher::new((0, secrets())).unwrap();
        let head = [23, 3, 3, 0, 1];
        assert_eq!(other.open(head, &mut sealed.clone()), Err(Refused), "another header");
        let mut right = Cipher::new((0, secrets())).unwrap();
        assert_eq!(right.open(HEADER, &mut sealed).unwrap().len(), 41);
    }

    #[test]
    fn room_of_another_size_is_refused() {
        let secrets = Secrets::Chacha20Poly1305 {
            key: AeadKey::from([1; 32]),
            iv: Iv::new([2; 12]),
        };
        let mut cipher = Cipher::new((0, secrets)).unwrap();
        for size in [0, 3, 4 + TAG, 6 + TAG] {
            assert_eq!(cipher.seal(HEADER, &[1; 4], 23, &mut vec![0; size]), Err(Refused));
        }
    }
}
