#!/bin/sh
# emulated.sh PROGRAM: runs a C test on a CPU that is not there, one with AVX-512, in Bochs.
#
#   BOCHS=path/to/bochs KERNEL=path/to/vmlinuz tools/emulated.sh build/venv/tests/test_kernels
#
# BOCHS is built with --enable-x86-64 --enable-avx --enable-evex --with-nogui (Debian's knows neither
# AVX nor AVX-512; QEMU no AVX-512); KERNEL has a serial console built in (Debian's cloud kernels).
# Needs xorriso, cpio, busybox (static), isolinux, Bochs' and its VGA BIOS; no root. CPU=tigerlake
# and the like name another model. About 160 million instructions a second: test_kernels takes 25
# minutes. OpenBLAS keeps to its loops for AVX2: what is looked at is ours.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
share=${BOCHS_SHARE:-/usr/share/bochs}
linux=${ISOLINUX:-/usr/lib/ISOLINUX/isolinux.bin}
modules=${SYSLINUX:-/usr/lib/syslinux/modules/bios}

mkdir -p "$work/fs/bin" "$work/fs/proc" "$work/fs/sys" "$work/fs/dev" "$work/fs/lib64" \
	"$work/fs/lib" "$work/iso/isolinux"
cp -L "$program" "$work/fs/program"
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" "$work/fs/lib/"; done
cp -L /lib64/ld-linux-x86-64.so.2 "$work/fs/lib64/"
cp -L "${BUSYBOX:-/bin/busybox}" "$work/fs/bin/busybox"
cat >"$work/fs/init" <<'EOF'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
exec >/dev/ttyS0 2>&1 </dev/null
grep -m1 '^flags' /proc/cpuinfo | tr ' ' '\n' | grep '^avx' | tr '\n' ' '
LD_LIBRARY_PATH=/lib OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=Haswell /program
echo "exit status $?"
dmesg | grep -i -E 'trap|segfault'
sync; sleep 1; poweroff -f
EOF
chmod +x "$work/fs/init"
(cd "$work/fs" && find . | cpio -o -H newc --quiet | gzip -1 >"$work/iso/initrd.gz")
cp -L "$KERNEL" "$work/iso/vmlinuz"
cp "$linux" "$modules/ldlinux.c32" "$work/iso/isolinux/"
cat >"$work/iso/isolinux/isolinux.cfg" <<'EOF'
default l
label l
 kernel /vmlinuz
 append initrd=/initrd.gz console=ttyS0 quiet nokaslr mitigations=off tsc=reliable lpj=1000000
EOF
xorriso -as mkisofs -quiet -o "$work/cd.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat \
	-no-emul-boot -boot-load-size 4 -boot-info-table "$work/iso" 2>/dev/null
cat >"$work/rc" <<EOF
config_interface: textconfig
display_library: nogui
memory: guest=2048, host=2048
romimage: file="$share/BIOS-bochs-latest"
vgaromimage: file="$share/VGABIOS-lgpl-latest"
cpu: model=${CPU:-corei7_skylake_x}, count=1, ips=50000000, reset_on_triple_fault=0, ignore_bad_msrs=1
clock: sync=none
boot: cdrom
ata0: enabled=1
ata0-master: type=cdrom, path="$work/cd.iso", status=inserted
com1: enabled=1, mode=file, dev=$work/serial.log
log: $work/bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
EOF
touch "$work/serial.log"
tail -f "$work/serial.log" &
"$BOCHS" -q -f "$work/rc" >"$work/out.log" 2>&1 </dev/null || true
kill $!
grep -q 'exit status 0' "$work/serial.log"
