import type { ShownBrand } from "../console/views.ts";

/** Tollgate's own brand, for pages without a brand in their document. */
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

/** Name and colour of the service. They are in the document, so that pages know them before the first paint. */
export const brand: ShownBrand = { ...OURS, ...inDocument() };

function inDocument(): Partial<ShownBrand> {
	const meta = globalThis.document?.querySelector<HTMLMetaElement>('meta[name="brand"]');
	return meta ? JSON.parse(meta.content) : {};
}
