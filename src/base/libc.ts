import { dlopen, FFIType } from "bun:ffi";

const { i32, u32, ptr } = FFIType;
const CALLS = {
	flock: { args: [i32, i32], returns: i32 },
	getsockname: { args: [i32, ptr, ptr], returns: i32 },
	getsockopt: { args: [i32, i32, i32, ptr, ptr], returns: i32 },
	setsockopt: { args: [i32, i32, i32, ptr, u32], returns: i32 },
} as const;

/** Opened once: each `dlopen` compiles the calls again and leaks 2.6 KB, and locks are tried every few seconds. */
let opened: ReturnType<typeof openLibc> | undefined;

/** System calls that Bun does not offer. */
export function libc(): ReturnType<typeof openLibc> {
	opened ??= openLibc();
	return opened;
}

function openLibc() {
	const names =
		process.platform === "darwin"
			? ["libSystem.B.dylib"]
			: ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];
	let last: unknown;
	for (const name of names) {
		try {
			return dlopen(name, CALLS).symbols;
		} catch (error) {
			last = error;
		}
	}
	throw new Error("this system's C library was not found", { cause: last });
}
