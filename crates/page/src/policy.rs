//! The script of all pages, and the policy that lets browsers run it and nothing else.

/// Script of all pages.
pub(crate) const SCRIPT: &str = include_str!("script.js");
/// SHA-256 of the script in Base64. A test compares it with the script.
const SCRIPT_HASH: &str = "uPX32yDKqUWJJ1NEI8glzmgqUoqg4wlkY/jjys+BagI=";

/// Returns the policy: no connection, no form, no script but that with the hash. Pictures have rules of style of their own.
pub(crate) fn content_security() -> String {
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the SHA-256 of a message (FIPS 180-4).
    fn sha256(message: &[u8]) -> [u8; 32] {
        let mut primes = (2_u64..).filter(|number| (2..*number).all(|divisor| number % divisor != 0));
        let primes: Vec<u64> = primes.by_ref().take(64).collect();
        // The first 32 bits of the fraction of a root, by integers: floor(root * 2^32) modulo 2^32.
        let root = |prime: u64, power: u32| {
            let target = u128::from(prime) << (32 * power);
            let (mut low, mut high) = (0_u128, 1_u128 << 40);
            while high - low > 1 {
                let middle = u128::midpoint(low, high);
                if middle.pow(power) <= target { low = middle } else { high = middle }
            }
            low as u32
        };
        let constants: Vec<u32> = primes.iter().map(|prime| root(*prime, 3)).collect();
        let mut state: Vec<u32> = primes[..8].iter().map(|prime| root(*prime, 2)).collect();
        let mut padded = message.to_vec();
        padded.push(0x80);
        padded.resize(padded.len().next_multiple_of(64) + if padded.len() % 64 > 56 { 64 } else { 0 } - 8, 0);
        padded.extend((message.len() as u64 * 8).to_be_bytes());
        for block in padded.chunks(64) {
            let mut words: Vec<u32> = block
                .chunks(4)
                .map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
                .collect();
            for at in 16..64 {
                let (one, other) = (words[at - 15], words[at - 2]);
                let small = one.rotate_right(7) ^ one.rotate_right(18) ^ (one >> 3);
                let great = other.rotate_right(17) ^ other.rotate_right(19) ^ (other >> 10);
                words
                    .push(words[at - 16].wrapping_add(small).wrapping_add(words[at - 7]).wrapping_add(great));
            }
            let mut v = state.clone();
            for at in 0..64 {
                let great = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
                let choice = (v[4] & v[5]) ^ (!v[4] & v[6]);
                let one = v[7]
                    .wrapping_add(great)
                    .wrapping_add(choice)
                    .wrapping_add(constants[at])
                    .wrapping_add(words[at]);
                let small = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
                let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
                let other = small.wrapping_add(majority);
                v.rotate_right(1);
                v[4] = v[4].wrapping_add(one);
                v[0] = one.wrapping_add(other);
            }
            state.iter_mut().zip(v).for_each(|(word, more)| *word = word.wrapping_add(more));
        }
        let bytes: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.try_into().expect("32 bytes")
    }

    fn base64(bytes: &[u8]) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for chunk in bytes.chunks(3) {
            let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
            let bits = (at(0) << 16) | (at(1) << 8) | at(2);
            for place in 0..4 {
                let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
                text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
            }
        }
        text
    }

    #[test]
    fn hashes_are_those_of_the_standard() {
        let hex =
            |message: &[u8]| -> String { sha256(message).iter().map(|byte| format!("{byte:02x}")).collect() };
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(long), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        assert_eq!(base64(b"ab"), "YWI=");
    }

    #[test]
    fn the_policy_names_the_script() {
        assert_eq!(SCRIPT_HASH, base64(&sha256(SCRIPT.as_bytes())), "script.js has another hash");
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"), "the script would end early");
    }
}
