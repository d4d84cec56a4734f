import { expect, test } from "bun:test";
import { parseBrand } from "../../src/catalog/brand-section.ts";
import { CatalogFileError, parseCatalogFile } from "../../src/catalog/file.ts";

const problemsOf = (brand: string): string => {
	try {
		parseCatalogFile(`models: []\nbrand:\n${brand}\n`, {});
		return "";
	} catch (error) {
		if (error instanceof CatalogFileError)
			return error.problems.map(({ line, message }) => `${line} ${message}`).join("\n");
		throw error;
	}
};

test("a brand in the file is read with variables and its mail address as a link", () => {
	const text = `models: nothing that matters here
brand:
  name: \${NAME}
  logo: logo.svg
  accent: "#AA3366"
  headline: Fast models
  lead: From the Alps.
  support: help@acme.example
  terms: { url: "https://acme.example/terms", version: 2026-11 }
  seller: { company: Acme GmbH, address: "Weg 1\\n1010 Wien", vat_id: ATU1 }
  privacy: https://acme.example/privacy
  imprint: https://acme.example/imprint
`;
	expect(parseBrand(text, { NAME: "Acme" })).toEqual({
		name: "Acme",
		logo: "logo.svg",
		accent: "#aa3366",
		headline: "Fast models",
		lead: "From the Alps.",
		support: "mailto:help@acme.example",
		terms: { url: "https://acme.example/terms", version: "2026-11" },
		seller: { company: "Acme GmbH", address: "Weg 1\n1010 Wien", vatId: "ATU1" },
		privacy: "https://acme.example/privacy",
		imprint: "https://acme.example/imprint",
	});
});

test("a file without `brand` has the default brand, and mistakes have their line", () => {
	expect(parseBrand("models: []", {})).toMatchObject({ name: null, accent: null, terms: null });
	expect(problemsOf('  name: "<b>"')).toBe("3 brand.name: must be 1 to 40 characters, without < > and quotes");
	expect(problemsOf("  accent: teal")).toContain("3 brand.accent: must be a colour");
	expect(problemsOf("  support: javascript:alert(1)")).toContain("3 brand.support: must be an address");
	expect(problemsOf("  privacy: data:text/html,x")).toContain("3 brand.privacy: must be an address");
	expect(problemsOf("  terms: { url: https://acme.example/ }")).toContain("version");
	expect(problemsOf("  colour: red")).toContain("unknown field");
});
