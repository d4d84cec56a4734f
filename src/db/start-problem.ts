/** What PostgreSQL meets on machines that are short of something, and what helps. */
const PROBLEMS: readonly (readonly [RegExp, string])[] = [
	[
		/could not look up effective user ID/,
		"its user has no name on this machine: give it an entry in /etc/passwd, or set DATABASE_URL",
	],
	[/shared memory segment.*No space left/, "/dev/shm is too small (docker run --shm-size=64m), or set DATABASE_URL"],
	[
		/No space left on device|Check free disk space/,
		"make room on the disk of DATA_DIR, 100 MB at least, or set DATABASE_URL",
	],
	[/insufficient file descriptors/, "it may open too few files: raise the limit (ulimit -n)"],
	[
		/could not fork|Resource temporarily unavailable/,
		"there may be no more processes: raise the limit (ulimit -u, pids.max)",
	],
];

/** From all that it said. */
export interface StartProblem {
	/** Undefined for what nobody has foreseen. */
	readonly remedy: string | undefined;
	/** The line of it that says most: the first that is fatal. */
	readonly line: string;
}

export function startProblem(said: string): StartProblem {
	const lines = said.split("\n").filter((line) => line.trim() !== "");
	const fatal = lines.find((line) => /FATAL|PANIC|error:/.test(line));
	const known = PROBLEMS.find(([pattern]) => pattern.test(said));
	return { remedy: known?.[1], line: fatal ?? lines.at(-1) ?? "" };
}
