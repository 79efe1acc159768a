j
locationw.binj
offset4j
length8p