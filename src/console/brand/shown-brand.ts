import { readFileSync, statSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { Fault } from "../../base/fault.ts";
import { type Brand, DEFAULT_BRAND, type SellerDetails } from "../../catalog/brand.ts";
import type { Config } from "../../config.ts";
import type { Palette } from "./palette.ts";

export interface ShownBrand extends Omit<Brand, "name" | "accent" | "logo" | "seller"> {
	readonly name: string;
	/** Path of the customized logo on this service; null: the pages show the built-in logo. */
	readonly logoUrl: string | null;
	readonly palette: Palette | null;
}

export interface OwnBrand {
	readonly shown: ShownBrand;
	readonly serviceName: string;
	readonly seller: SellerDetails | null;
	readonly logo: { readonly path: string; readonly bytes: Uint8Array<ArrayBuffer>; readonly type: string } | null;
}

const LOGO_BYTES_MAX = 256 * 1024;
const LOGO_TYPES: Readonly<Record<string, string>> = {
	".svg": "image/svg+xml",
	".png": "image/png",
	".webp": "image/webp",
};
const OUR_NAME = "Tollgate";
/** Finds out cheaply whether the catalogue may contain a brand. A match in a comment only costs parsing the file. */
const HAS_BRAND = /brand["']?\s*:/;

/**
 * Reads the brand from `tollgate.yaml` at the start. Loads the YAML parser only if the file mentions a brand. Fault
 * `invalid_request` for a logo that browsers cannot show.
 */
export async function readOwnBrand(config: Pick<Config, "configPath" | "env" | "serviceName">): Promise<OwnBrand> {
	const { name, accent, logo: file, seller, ...rest } = await readSection(config);
	const logo = file === null ? null : readLogo(resolve(dirname(config.configPath ?? ""), file));
	return {
		serviceName: name ?? config.serviceName,
		logo,
		seller,
		shown: {
			...rest,
			name: name ?? OUR_NAME,
			logoUrl: logo?.path ?? null,
			palette: accent === null ? null : (await import("./palette.ts")).createPalette(accent),
		},
	};
}

async function readSection({ configPath, env }: Pick<Config, "configPath" | "env">): Promise<Brand> {
	const text = configPath === null ? "" : readFileSync(configPath, "utf8");
	if (!HAS_BRAND.test(text)) return DEFAULT_BRAND;
	return (await import("../../catalog/brand-section.ts")).parseBrand(text, env);
}

function readLogo(file: string): OwnBrand["logo"] {
	const type = LOGO_TYPES[extname(file).toLowerCase()];
	const size = statSync(file, { throwIfNoEntry: false })?.size;
	const refused = (why: string) => new Fault("invalid_request", `brand.logo: ${file} ${why}`);
	if (type === undefined) throw refused("is none of .svg, .png and .webp");
	if (size === undefined) throw refused("is not there");
	if (size > LOGO_BYTES_MAX) throw refused(`is larger than ${LOGO_BYTES_MAX / 1024} KB`);
	const bytes = new Uint8Array(readFileSync(file));
	return { path: `/assets/logo-${Bun.hash(bytes).toString(36)}${extname(file).toLowerCase()}`, bytes, type };
}
