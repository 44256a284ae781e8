camera { location <0, 3, -12> look_at 0 }
light_source { <8, 12, -9> rgb 1 }
plane { y, -2 pigment { checker rgb 1, rgb 0.2 } finish { reflection 0.3 } }
#declare Number = 0;
#while (Number < 400)
  sphere { <mod(Number * 37, 100) / 10 - 5, mod(Number * 53, 40) / 10 - 2, mod(Number * 71, 100) / 10 - 3>, 0.35
    pigment { rgb <mod(Number, 7) / 7, mod(Number, 5) / 5, mod(Number, 3) / 3> } finish { reflection 0.4 phong 1 } }
  #declare Number = Number + 1;
#end
