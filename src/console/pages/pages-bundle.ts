import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const BUNDLER = join(import.meta.dir, "../../web/bundle.ts");

let bundled: Promise<Record<string, string>> | undefined;

/** Bundles once per process: all services of a process use the same files. A failed bundling is repeated. */
export function bundlePages(): Promise<Record<string, string>> {
	bundled ??= bundle().catch((error) => {
		bundled = undefined;
		throw error;
	});
	return bundled;
}

/**
 * Bundles the pages in a child process, so that the event loop stays free. Returns contents by file name; all names but
 * `index.html` contain a hash.
 */
async function bundle(): Promise<Record<string, string>> {
	const directory = await mkdtemp(join(tmpdir(), "tollgate-pages-"));
	try {
		const bundler = Bun.spawn([process.execPath, BUNDLER, directory], { stdout: "ignore", stderr: "pipe" });
		const complaint = await new Response(bundler.stderr).text();
		if ((await bundler.exited) !== 0) throw new Error(`the pages could not be bundled: ${complaint}`);
		const files: Record<string, string> = {};
		for (const name of await readdir(directory)) {
			files[name.endsWith(".html") ? "index.html" : name] = await Bun.file(join(directory, name)).text();
		}
		return files;
	} finally {
		await rm(directory, { recursive: true, force: true });
	}
}
