import { createWriteStream } from "node:fs";
import { PROGRAM, type Program } from "../cli/run-cli.ts";

export type ServeProcess = Awaited<ReturnType<typeof startServe>>;

export type LogLine = Readonly<Record<string, unknown>> & { readonly message: string };

const LINES_MAX = 5_000;
/** Longest wait in milliseconds for a start while other tests run; only a failure takes this long. */
const WAIT_MS = 60_000;

/**
 * Starts `serve`, a gateway unless `env` has another ROLE, and waits until `ready` (by default until it listens).
 * Rejects if the process ends before. `logPath`: file for its output; `program`: another version; `preload`: loaded
 * before it and its children.
 */
export async function startServe(
	env: Readonly<Record<string, string>>,
	options: { logPath?: string; ready?: string; program?: Program; preload?: string } = {},
) {
	const preload = options.preload === undefined ? {} : { BUN_OPTIONS: `"--preload=${options.preload}"` };
	const { PATH = "", HOME = "" } = process.env;
	const child = Bun.spawn([...(options.program ?? PROGRAM), "serve"], {
		cwd: import.meta.dir,
		env: { PATH, HOME, HOST: "127.0.0.1", ROLE: "gateway", ...preload, ...env },
		stdio: ["ignore", "ignore", "pipe"],
	});
	const lines: LogLine[] = [];
	const watchers = new Set<() => void>();
	let url = "";
	let ended = false;
	const file = options.logPath === undefined ? undefined : createWriteStream(options.logPath, { flags: "a" });
	const read = (async () => {
		let rest = "";
		const decoder = new TextDecoder();
		for await (const chunk of child.stderr) {
			file?.write(chunk);
			const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
			rest = parts.pop() ?? "";
			for (const part of parts) note(part);
		}
	})();
	const exited = child.exited.then(async (code) => {
		await read;
		file?.end();
		ended = true;
		for (const watcher of watchers) watcher();
		return code;
	});

	function note(part: string): void {
		const line: LogLine = part.startsWith("{") ? JSON.parse(part) : { level: "raw", message: part };
		if (line.message === "listening") url = String(line.url);
		lines.push(line);
		if (lines.length > LINES_MAX) lines.splice(0, LINES_MAX / 2);
		for (const watcher of watchers) watcher();
	}

	/** The next line, from index `from` on, that `matches` accepts. Rejects when the process ends or at the deadline. */
	const logged = (matches: (line: LogLine) => boolean, what: string, from = 0) =>
		new Promise<LogLine>((resolve, reject) => {
			const stop = () => {
				clearTimeout(timer);
				watchers.delete(look);
			};
			const fail = (why: string) => {
				stop();
				const tail = lines.slice(-8).map((line) => JSON.stringify(line).slice(0, 400));
				reject(new Error(`${why} before it logged ${what}:\n${tail.join("\n")}`));
			};
			const timer = setTimeout(() => fail(`${WAIT_MS} ms passed`), WAIT_MS);
			const look = () => {
				const found = lines.slice(from).find(matches);
				if (found !== undefined) {
					stop();
					resolve(found);
				} else if (ended) fail("the process ended");
			};
			watchers.add(look);
			look();
		});

	const served = {
		pid: child.pid,
		get url() {
			return url;
		},
		/** Last parsed lines of the log, to which the process's workers write too. */
		lines: lines as readonly LogLine[],
		kill: (signal: NodeJS.Signals) => {
			if (!ended) child.kill(signal);
		},
		logged,
		exited,
		hasExited: () => ended,
	};
	const ready = options.ready ?? "listening";
	try {
		await logged((line) => line.message === ready, `"${ready}"`);
	} catch (error) {
		child.kill("SIGKILL");
		await exited;
		throw error;
	}
	return served;
}

/**
 * A port below the system's range for outgoing connections, so that no other process takes it during a restart. A port
 * chosen with 0 might be taken before the database is ready.
 */
export function quietPort(): number {
	for (let attempt = 0; attempt < 100; attempt++) {
		const port = 15_000 + Math.floor(Math.random() * 15_000);
		try {
			Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
			return port;
		} catch {}
	}
	throw new Error("no free port was found");
}
