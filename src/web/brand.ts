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

const inDocument = globalThis.document?.querySelector<HTMLMetaElement>('meta[name="brand"]');

/** The service's name and colour. They are in the HTML document, so that pages have them before the first paint. */
export const brand: ShownBrand = inDocument ? { ...OURS, ...JSON.parse(inDocument.content) } : OURS;
