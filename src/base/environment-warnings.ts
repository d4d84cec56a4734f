import type { Environment } from "./environment-reader.ts";
import { isOneEditAway, normalizeWord } from "./near-word.ts";

const KNOWN_MODES = ["production", "development", "test"];
/** Length from which a name can count as a typo: shorter names resemble too many words. */
const NEAR_CHARS_MIN = 6;

/** Warns of environment variables without effect, and of probable typos. `names`: the known variables. */
export function environmentWarnings(env: Environment, names: readonly string[]): string[] {
	const warnings: string[] = [];
	const { NODE_ENV: mode } = env;
	if (mode && !KNOWN_MODES.includes(mode))
		warnings.push(
			`NODE_ENV is ${JSON.stringify(mode)}, which is not production: secrets are not required, and without a catalogue and a database the demo runs`,
		);
	for (const name of ["DATA_DIR", "ARCHIVE"]) {
		const [sign] = /^~|^\$(?=\{?[A-Za-z])/.exec(env[name] ?? "") ?? [];
		if (sign !== undefined)
			warnings.push(`${name} begins with ${sign}, which only a shell expands: write the full path`);
	}
	for (const name of Object.keys(env)) {
		const meant = meantBy(name, env, names);
		if (meant !== undefined) warnings.push(`${name} is unknown: did you mean ${meant}?`);
	}
	return warnings;
}

/** The known, unset variable of which `name` may be a typo: one edit away, or equal except for case and separators. */
function meantBy(name: string, env: Environment, names: readonly string[]): string | undefined {
	// Names that start with OTEL_ are skipped: OpenTelemetry has many more variables than this service reads.
	if (name.length < NEAR_CHARS_MIN || names.includes(name) || name.startsWith("OTEL_")) return undefined;
	const plain = normalizeWord(name);
	return names.find((one) => one.length >= NEAR_CHARS_MIN && !env[one] && isOneEditAway(plain, normalizeWord(one)));
}
