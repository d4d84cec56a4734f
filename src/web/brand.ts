import type { ShownBrand } from "../console/views.ts";

/** Tollgate's brand, for documents without an operator's brand. */
const OURS: ShownBrand = {
	name: "Tollgate",
	logoUrl: null,
	palette: null,
	headline: null,
	lead: null,
	support: null,
	terms: null,
	privacy: null,
	imprint: null,
};

/** The service's name and colour. They are in the HTML document, so that pages have them before the first paint. */
export const brand: ShownBrand = { ...OURS, ...inDocument() };

function inDocument(): Partial<ShownBrand> {
	const meta = globalThis.document?.querySelector<HTMLMetaElement>('meta[name="brand"]');
	return meta ? JSON.parse(meta.content) : {};
}
