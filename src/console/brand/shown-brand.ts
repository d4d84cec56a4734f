import { readFileSync, statSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { Fault } from "../../base/fault.ts";
import type { Brand } from "../../catalog/brand.ts";
import { PLAIN_BRAND } from "../../catalog/brand.ts";
import { parseBrand } from "../../catalog/brand-section.ts";
import type { Config } from "../../config.ts";
import type { Palette } from "./palette.ts";
import { paletteOf } from "./palette.ts";

/** What the pages draw, as it stands in their document. */
export interface ShownBrand extends Omit<Brand, "name" | "accent" | "logo"> {
	readonly name: string;
	/** A path of this service; null for our own mark. */
	readonly logoUrl: string | null;
	readonly palette: Palette | null;
}

export interface OwnBrand {
	readonly shown: ShownBrand;
	/** In mails, on receipts and at the payment provider. */
	readonly serviceName: string;
	readonly logo: { readonly path: string; readonly bytes: Uint8Array<ArrayBuffer>; readonly type: string } | null;
}

const LOGO_BYTES_MAX = 256 * 1024;
const LOGO_TYPES: Readonly<Record<string, string>> = {
	".svg": "image/svg+xml",
	".png": "image/png",
	".webp": "image/webp",
};
const OUR_NAME = "Tollgate";

/** As of the start: a change takes effect with the next one. Fault invalid_request for a logo that cannot be shown. */
export function readOwnBrand(config: Pick<Config, "configPath" | "env" | "serviceName">): OwnBrand {
	const { configPath } = config;
	const brand = configPath === null ? PLAIN_BRAND : parseBrand(readFileSync(configPath, "utf8"), config.env);
	const logo = brand.logo === null || configPath === null ? null : readLogo(resolve(dirname(configPath), brand.logo));
	const { name, accent, logo: _, ...rest } = brand;
	return {
		serviceName: name ?? config.serviceName,
		logo,
		shown: {
			...rest,
			name: name ?? OUR_NAME,
			logoUrl: logo?.path ?? null,
			palette: accent === null ? null : paletteOf(accent),
		},
	};
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
