import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const BUNDLER = join(import.meta.dir, "../../web/bundle.ts");

let bundled: Promise<Record<string, string>> | undefined;

/** Once for all services of this process, since what they serve stands in the same files; again where it failed. */
export function bundlePages(): Promise<Record<string, string>> {
	bundled ??= bundle().catch((error) => {
		bundled = undefined;
		throw error;
	});
	return bundled;
}

/**
 * Bundles the pages with the bundler that the runtime brings, in a process of its own: the service goes on meanwhile.
 * File names carry a hash of their content; assets are asked for under /assets/. Gives file names and texts, `index.html`
 * without a hash.
 */
async function bundle(): Promise<Record<string, string>> {
	const directory = await mkdtemp(join(tmpdir(), "tollgate-pages-"));
	try {
		const bundler = Bun.spawn([process.execPath, BUNDLER, directory], { stdout: "ignore", stderr: "pipe" });
		const complaint = await new Response(bundler.stderr).text();
		if ((await bundler.exited) !== 0) throw new Error(`the pages could not be bundled: ${complaint}`);
		const files: Record<string, string> = {};
		for (const name of await readdir(directory)) {
			const text = await Bun.file(join(directory, name)).text();
			files[name.endsWith(".html") ? "index.html" : name] = text;
		}
		return files;
	} finally {
		await rm(directory, { recursive: true, force: true });
	}
}
