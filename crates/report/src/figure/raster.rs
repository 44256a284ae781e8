//! Rasters as PNG: a heat map is one small image, not thousands of rectangles.

use crate::text::base64;
use flate2::{Compression, Crc, write::ZlibEncoder};
use std::io::Write;

/// Colours from few to much, dark blue to yellow, which people tell apart however they see colour:
/// by their lightness.
const STOPS: [[f64; 3]; 6] = [
    [0.0, 34.0, 78.0],
    [53.0, 69.0, 108.0],
    [102.0, 105.0, 112.0],
    [148.0, 142.0, 119.0],
    [200.0, 184.0, 102.0],
    [254.0, 232.0, 56.0],
];

/// The colour of a share of the whole range.
pub(crate) fn colour(share: f64) -> [u8; 3] {
    let at = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let first = (at.floor() as usize).min(STOPS.len() - 2);
    let t = at - first as f64;
    std::array::from_fn(|n| (STOPS[first][n] * (1.0 - t) + STOPS[first + 1][n] * t).round() as u8)
}

/// A `data:` address of a PNG. Cells are rows from the top, each a share from 0 to 1; what is
/// missing is transparent.
pub(crate) fn data_address(columns: usize, cells: &[Option<f64>]) -> String {
    let rows = cells.len() / columns.max(1);
    let mut raw = Vec::with_capacity(cells.len() * 4 + rows);
    for row in cells.chunks(columns.max(1)) {
        raw.push(0); // no filter
        for cell in row {
            match cell {
                Some(share) => raw.extend(colour(*share).into_iter().chain([255])),
                None => raw.extend([0; 4]),
            }
        }
    }
    let mut header = Vec::new();
    header.extend((columns as u32).to_be_bytes());
    header.extend((rows as u32).to_be_bytes());
    header.extend([8, 6, 0, 0, 0]); // 8 bits each of red, green, blue, alpha
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut png, *b"IHDR", &header);
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&raw).expect("memory takes all");
    chunk(&mut png, *b"IDAT", &packed.finish().expect("memory takes all"));
    chunk(&mut png, *b"IEND", &[]);
    format!("data:image/png;base64,{}", base64(&png))
}

fn chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let mut sum = Crc::new();
    sum.update(&kind);
    sum.update(data);
    png.extend(kind);
    png.extend(data);
    png.extend(sum.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_raster_stays_small() {
        let cells: Vec<_> = (0..256 * 256).map(|n| Some(f64::from(n % 251) / 251.0)).collect();
        let address = data_address(256, &cells);
        assert!(address.starts_with("data:image/png;base64,iVBORw0KGgo"));
        assert!(address.len() < 400_000, "{}", address.len());
    }

    #[test]
    fn lightness_grows_with_the_value() {
        let light = |share| colour(share).map(u32::from).iter().sum::<u32>();
        assert!((0..20).all(|n| light(f64::from(n) / 20.0) < light(f64::from(n + 1) / 20.0)));
    }
}
