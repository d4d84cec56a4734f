export const requests = {
	Input: "Eingabe",
	"Cached input": "Eingabe aus dem Zwischenspeicher",
	Output: "Ausgabe",
	Audio: "Audio",
	Searches: "Suchen",
	"What was asked and answered is not stored, but for the files of batches: only when, by which key, how much and what it cost. An answer to a request with an Idempotency-Key is kept for a day, sealed so that only your API key opens it.":
		"Fragen und Antworten werden außer in den Dateien von Stapeln nicht gespeichert: nur wann, mit welchem Schlüssel, wie viel und zu welchen Kosten. Die Antwort auf eine Anfrage mit Idempotency-Key wird einen Tag lang aufbewahrt, so verschlossen, dass nur Ihr API-Schlüssel sie öffnet.",
	Reload: "Neu laden",
	"Only lines of the batch {link}. <button>Show all requests</button>":
		"Nur Zeilen des Stapels {link}. <button>Alle Anfragen anzeigen</button>",
	"Find a request by its id": "Anfrage nach Kennung suchen",
	"Request id, press /": "Kennung der Anfrage, Taste /",
	"No request matches.": "Keine Anfrage passt.",
	"Choose a longer time, or take a filter away.":
		"Wählen Sie einen längeren Zeitraum oder nehmen Sie einen Filter weg.",
	"No requests in this time.": "Keine Anfragen in dieser Zeit.",
	"Try a model in the playground": "Ein Modell ausprobieren",
	"Each request appears here within a second or two of its end, or of being refused.":
		"Jede Anfrage erscheint hier ein bis zwei Sekunden, nachdem sie beendet oder abgewiesen wurde.",
	"The account's credit did not cover the most that this request could cost.":
		"Das Guthaben des Kontos deckte nicht, was diese Anfrage höchstens kosten konnte.",
	"of the account's credit": "vom Guthaben des Kontos",
	"The spending cap of the key's project did not cover the most that this request could cost.":
		"Die Obergrenze des Projekts, zu dem der Schlüssel gehört, deckte nicht, was diese Anfrage höchstens kosten konnte.",
	"under the project's cap": "unter der Obergrenze des Projekts",
	"The key's spending cap did not cover the most that this request could cost.":
		"Die Obergrenze des Schlüssels deckte nicht, was diese Anfrage höchstens kosten konnte.",
	"under the key's cap": "unter der Obergrenze des Schlüssels",
	"by requests that were running": "durch laufende Anfragen",
	Needed: "Benötigt",
	"the most that it could cost": "was sie höchstens kosten konnte",
	Missing: "Es fehlten",
	"Would have fitted": "Hätte gepasst",
	"{count} tokens": "{count} Token",
	"not with this prompt": "nicht mit dieser Eingabe",
	"Name the request's id when you ask for help.": "Nennen Sie die Kennung der Anfrage, wenn Sie um Hilfe bitten.",
	"{link}, or take it away.": "{link} oder heben Sie sie auf.",
	"Raise the cap of {keyName}": "Erhöhen Sie die Obergrenze von {keyName}",
	"Raise the cap of the key's project, or take it away.":
		"Erhöhen Sie die Obergrenze des Projekts, zu dem der Schlüssel gehört, oder heben Sie sie auf.",
	"Top up the account": "Laden Sie das Konto auf",
	"Or ask for less: with {code} of {count} at the most it would have been admitted. What an answer does not use is given back.":
		"Oder verlangen Sie weniger: Mit {code} von höchstens {count} wäre sie zugelassen worden. Was eine Antwort nicht verbraucht, wird zurückgegeben.",
	"Or wait: what running requests hold and do not use is free again when they end.":
		"Oder warten Sie: Was laufende Anfragen reservieren und nicht verbrauchen, ist nach ihrem Ende wieder frei.",
	"the list of models": "der Modellliste",
	"It is a passing state: send the request again, after the seconds that retry-after names.":
		"Das ist vorübergehend: Senden Sie die Anfrage nach so vielen Sekunden erneut, wie retry-after angibt.",
	"Mend the request; the same one will be refused again.":
		"Berichtigen Sie die Anfrage; dieselbe wird wieder abgewiesen.",
	"<link>Make a first top-up</link>; the key works as soon as it is confirmed.":
		"<link>Laden Sie zum ersten Mal auf</link>; der Schlüssel gilt, sobald die Aufladung bestätigt ist.",
	"An owner of the account signs in to this console once.":
		"Ein Inhaber des Kontos meldet sich einmal an dieser Konsole an.",
	"{link}, or use another key.": "{link} oder verwenden Sie einen anderen Schlüssel.",
	"Add the model to those of {keyName}": "Fügen Sie das Modell denen von {keyName} hinzu",
	"Ask the operator of the service.": "Wenden Sie sich an den Betreiber des Dienstes.",
	"Use <link>a key</link> of another project.": "Verwenden Sie <link>einen Schlüssel</link> eines anderen Projekts.",
	"Something still uses this key. Give it <link>another one</link>.":
		"Etwas benutzt diesen Schlüssel noch. Geben Sie ihm <link>einen anderen</link>.",
	"{change}, or use <link>another key</link>.": "{change} oder verwenden Sie <link>einen anderen Schlüssel</link>.",
	"Change when {keyName} expires": "Ändern Sie, wann {keyName} abläuft,",
	"This key only reads usage. Use <link>another key</link> for requests.":
		"Dieser Schlüssel liest nur den Verbrauch. Verwenden Sie für Anfragen <link>einen anderen Schlüssel</link>.",
	"Take an id from {modelsLink}.": "Nehmen Sie eine Kennung aus {modelsLink}.",
	"Use the model's own endpoint, or another model from {modelsLink}.":
		"Verwenden Sie den Endpunkt des Modells oder ein anderes Modell aus {modelsLink}.",
	"Send fewer or smaller requests at a time or, where it was a limit of the key's own, {link}. SDKs wait and send them again by themselves.":
		"Senden Sie weniger oder kleinere Anfragen gleichzeitig oder, wo es eine Grenze des Schlüssels selbst war: {link}. SDKs warten und senden sie von selbst erneut.",
	"change the limits of {keyName}": "ändern Sie die Grenzwerte von {keyName}",
	"The body did not arrive in time. Send it again.": "Der Inhalt kam nicht rechtzeitig an. Senden Sie ihn erneut.",
	"Shorten the prompt, lower max_tokens, or use a model with a longer context.":
		"Kürzen Sie die Eingabe, senken Sie max_tokens oder verwenden Sie ein Modell mit längerem Kontext.",
	"Send less at once: fewer or smaller images, a shorter recording.":
		"Senden Sie weniger auf einmal: weniger oder kleinere Bilder, eine kürzere Aufnahme.",
	Field: "Feld",
	"not read so far": "so weit nicht gelesen",
	nothing: "nichts",
	Repeated: "Wiederholt",
	"{count} more with this key and code until {repeated}, counted and not listed":
		"{count} weitere mit diesem Schlüssel und Code bis {repeated}, gezählt und nicht aufgeführt",
	Admitted: "Zugelassen",
	Settled: "Abgerechnet",
	"Chat completions": "Chat-Antworten",
	Completions: "Textergänzungen",
	Transcriptions: "Transkriptionen",
	Rerank: "Neusortierung",
	"The model finished its answer": "Das Modell hat seine Antwort beendet",
	"The model's server failed": "Der Modellserver ist ausgefallen",
	"The model's server broke off in the middle": "Der Modellserver hat mittendrin abgebrochen",
	"The model's server fell silent": "Der Modellserver ist verstummt",
	"The client left": "Der Client hat abgebrochen",
	"The service was being restarted": "Der Dienst wurde neu gestartet",
	"The instance of the service died": "Die Instanz des Dienstes ist ausgefallen",
	"per million tokens": "je Million Token",
	"per request": "je Anfrage",
	"per image": "je Bild",
	"per second": "je Sekunde",
	"per search": "je Suche",
	"Exact: as counted by the model's server": "Exakt: wie vom Modellserver gezählt",
	"Estimated: the client left before the server had counted":
		"Geschätzt: Der Client brach ab, bevor der Server gezählt hatte",
	"Recovered: settled after an instance of the service died":
		"Nachgetragen: abgerechnet, nachdem eine Instanz des Dienstes ausgefallen war",
	"Estimated: the model's server gave no count that could be taken":
		"Geschätzt: Der Modellserver nannte keine Zahl, die gelten konnte",
	"No server took it": "Kein Server hat sie angenommen",
	"The client closed the connection.": "Der Client hat die Verbindung geschlossen.",
	"The model's server failed.": "Der Modellserver ist ausgefallen.",
	"No server for the model could take it just then.":
		"Kein Server für dieses Modell konnte sie in diesem Moment annehmen.",
	"The model's server did not answer in time.": "Der Modellserver hat nicht rechtzeitig geantwortet.",
	"There is no such request in this account.": "In diesem Konto gibt es keine solche Anfrage.",
	"The id is the value of the x-request-id header, or the answer's own id. A request appears when it ends, or when it is refused.":
		"Die Kennung steht in der Kopfzeile x-request-id oder ist die der Antwort. Eine Anfrage erscheint, sobald sie endet oder abgewiesen wird.",
	"The id is the value of the x-request-id header, or the answer's own id. A request appears when it ends; one that was refused is kept for {count} days.":
		{
			one: "Die Kennung steht in der Kopfzeile x-request-id oder ist die der Antwort. Eine Anfrage erscheint, sobald sie endet; eine abgewiesene wird einen Tag aufbewahrt.",
			other:
				"Die Kennung steht in der Kopfzeile x-request-id oder ist die der Antwort. Eine Anfrage erscheint, sobald sie endet; eine abgewiesene wird {count} Tage aufbewahrt.",
		},
	"held {reserved}": "{reserved} reserviert",
	"prompt + completion": "Eingabe + Ausgabe",
	"The credit did not cover {writtenOff} of what it cost. That was not charged.":
		"Das Guthaben deckte {writtenOff} ihrer Kosten nicht. Dieser Betrag wurde nicht berechnet.",
	", streamed": ", gestreamt",
	"How it ended": "Wie sie endete",
	Basis: "Grundlage",
	"none was reached": "keines wurde erreicht",
	"Answer's id": "Kennung der Antwort",
	"Rate card": "Preisliste",
	Timeline: "Zeitverlauf",
	"Cost, line by line": "Kosten, Zeile für Zeile",
	"Nothing was charged.": "Es wurde nichts berechnet.",
	Units: "Einheiten",
	Rate: "Preis",
	"Sum, rounded up once to a billionth of a dollar": "Summe, einmal auf ein Milliardstel Dollar aufgerundet",
} as const;
