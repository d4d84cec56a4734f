import { KEY_VARIABLE } from "../snippets.ts";
import { t } from "../texts.tsx";

/** What a person points at the service, and each thing to do until its first answer, as text that works as pasted. */
export interface Tool {
	/** In addresses, in what the browser remembers, and in the table of what was tried. */
	readonly id: string;
	readonly name: string;
	/** What must be there before, in the words of who sells it. */
	readonly needs?: string;
	steps(facts: ToolFacts): readonly ToolStep[];
}

export interface ToolFacts {
	readonly baseUrl: string;
	readonly model: string;
	/** A whole secret just after it was made, else what stands for it. */
	readonly apiKey: string;
	/** Under which the service is sold. */
	readonly serviceName: string;
	readonly question: string;
}

export type ToolStep = PackageStep | ShellStep | FileStep | PlaceStep;

/** The line that fetches packages. Apart from other lines, because versions are pinned where it is tried. */
export interface PackageStep {
	readonly does: "packages";
	readonly by: keyof typeof INSTALLERS;
	readonly packages: readonly string[];
}

/** Lines for a shell, each step in the same one. */
export interface ShellStep {
	readonly does: "shell";
	readonly say: string;
	readonly code: string;
}

/** A file, whole. `path`: beside the others, or in the home folder if it begins with `~/`. */
export interface FileStep {
	readonly does: "file";
	readonly path: string;
	readonly code: string;
}

/** Where to go in a program that has windows; `code` is what to enter there. */
export interface PlaceStep {
	readonly does: "place";
	readonly say: string;
	readonly code?: string;
}

const INSTALLERS = {
	pip: (packages: string) => `pip install ${packages}`,
	npm: (packages: string) => `npm install ${packages}`,
	go: (packages: string) => `go mod init chat && go get ${packages}`,
};

/** `pinned`: a package with its version, in the installer's own words. */
export function packageLine({ by, packages }: PackageStep, pinned: (name: string) => string = (name) => name): string {
	return INSTALLERS[by](packages.map(pinned).join(" "));
}

/** The first thing of every tool that is started from a shell. */
export const keyStep = ({ apiKey }: ToolFacts): ShellStep => ({
	does: "shell",
	say: t("The key, for this shell"),
	code: `export ${KEY_VARIABLE}="${apiKey}"`,
});
