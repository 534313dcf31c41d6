//! The rows of /proc/meminfo that watchers read.

/// Values in kB, as the file has them. A row that the file does not have is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeminfoReading {
    pub mem_total: u64,
    pub mem_free: u64,
    pub mem_available: u64,
    pub anon_pages: u64,
    pub active_anon: u64,
    pub inactive_anon: u64,
    pub shmem: u64,
    pub cma_free: u64,
    pub swap_total: u64,
    pub swap_free: u64,
}

impl MeminfoReading {
    /// Reads the text of the file.
    pub fn parse(text: &str) -> MeminfoReading {
        let mut read = MeminfoReading::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let number = value.split_whitespace().next().and_then(|word| word.parse().ok());
            let (Some(place), Some(number)) = (read.row(name), number) else { continue };
            *place = number;
        }
        read
    }

    fn row(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "MemTotal" => &mut self.mem_total,
            "MemFree" => &mut self.mem_free,
            "MemAvailable" => &mut self.mem_available,
            "AnonPages" => &mut self.anon_pages,
            "Active(anon)" => &mut self.active_anon,
            "Inactive(anon)" => &mut self.inactive_anon,
            "Shmem" => &mut self.shmem,
            "CmaFree" => &mut self.cma_free,
            "SwapTotal" => &mut self.swap_total,
            "SwapFree" => &mut self.swap_free,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_names() {
        let text = "MemTotal:       32495256 kB\nMemAvailable:   21777088 kB\n\
                    Active(anon):       12 kB\nSwapFree:           7604 kB\nHugePages_Total:       0\n";
        let read = MeminfoReading::parse(text);
        assert_eq!((read.mem_total, read.mem_available), (32_495_256, 21_777_088));
        assert_eq!((read.active_anon, read.swap_free, read.swap_total), (12, 7604, 0));
        assert_eq!(MeminfoReading::parse("MemTotal: x kB\n\nnothing"), MeminfoReading::default());
    }
}
